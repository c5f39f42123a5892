insert into evidence (tenant, id, digest) values (:tenant, :command_id, :digest);
select ibid_emit('evidence', :digest, 'EvidenceImported', json_object('digest', :digest));
select 201 as status, 'evidence' as resource_type, :command_id as resource_id;
