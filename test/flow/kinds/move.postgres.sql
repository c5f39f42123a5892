insert into attempt (key) values (:key);
select 200 as status, ibid.move(coalesce(:machine, 'case'), :subject, :to, :attributes, :expected) as body;
