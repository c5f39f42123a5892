-- One piece of evidence for each content. What is on file already is found even when the case is closed.
select ibid.reject('CASE_NOT_FOUND', 404, 'there is no such case')
where not exists (select 1 from enforcement_case where tenant = :tenant and id = :caseId for update);

insert into case_evidence (tenant, id, case_id, sha256, file_name, kind, submitted_by, submitted_at)
values (:tenant, :command_id::text, :caseId, :sha256, :fileName, :kind, :actor, :now);

select ibid.reject('CASE_CLOSED', 409, 'a closed case takes no evidence: reopen it')
from enforcement_case where tenant = :tenant and id = :caseId and status = 'CLOSED';
