-- One notice for each business key; whoever delivers it listens for the event. Closed cases have notices, too.
select ibid_reject('CASE_NOT_FOUND', 404, 'there is no such case')
where not exists (select 1 from enforcement_case where tenant = :tenant and id = :caseId);

select ibid_reject('NO_SUCH_VERSION', 422, 'the case is at version ' || version)
from enforcement_case where tenant = :tenant and id = :caseId and version < :caseVersion;

insert into case_notice (tenant, id, case_id, source_case_version, notice_type, recipient, issued_at)
values (:tenant, :command_id, :caseId, :caseVersion, :noticeType, :recipient, :now);
