insert into evidence (tenant, id, digest) values (:tenant, :command_id, :digest);
select ibid.emit('evidence', :digest, 'EvidenceImported', jsonb_build_object('digest', :digest));
select 201 as status, 'evidence' as resource_type, :command_id as resource_id;
