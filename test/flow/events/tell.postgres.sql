insert into told (id) values (:id);
select ibid.emit(aggregate, id, 'Told', body) from source where id = :id;
select 201 as status, 'told' as resource_type, :id as resource_id;
