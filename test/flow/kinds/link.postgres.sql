insert into attempt (key) values (:key);
select ibid.link_reference(:source, :external, :type, :id);
select 200 as status, jsonb_build_object('is', ibid.find_reference(:source, :external),
  'called', ibid.find_external(:type, :id)) as body;
