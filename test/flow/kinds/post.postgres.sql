insert into attempt (key) values (:key);
select 201 as status, 'journal' as resource_type, ibid.post(:source, :lines, :date, :text) as resource_id;
