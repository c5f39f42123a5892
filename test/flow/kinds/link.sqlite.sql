insert into attempt (key) values (:key);
select ibid_link_reference(:source, :external, :type, :id);
select 200 as status, json_object('is', json(ibid_find_reference(:source, :external)),
  'called', json(ibid_find_external(:type, :id))) as body;
