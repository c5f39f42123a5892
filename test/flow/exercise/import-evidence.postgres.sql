select ibid.link_reference('content', :content, 'evidence', :command_id::text)
  where ibid.find_reference('content', :content) is null;
select 201 as status, 'evidence' as resource_type, ibid.find_reference('content', :content) ->> 'resource_id' as resource_id;
