-- The notice that was issued.
select 200 as status, jsonb_build_object('noticeId', id, 'caseId', case_id, 'noticeType', notice_type) as body,
       'notice' as resource_type, id as resource_id
from case_notice
where tenant = :tenant and case_id = :caseId and source_case_version = :caseVersion and notice_type = :noticeType
  and recipient = :recipient;
