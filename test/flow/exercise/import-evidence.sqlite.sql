select ibid_link_reference('content', :content, 'evidence', :command_id)
  where ibid_find_reference('content', :content) is null;
select 201 as status, 'evidence' as resource_type, ibid_find_reference('content', :content) ->> 'resource_id' as resource_id;
