select ibid.reject('ON_REQUEST', 422, 'rejected on request') where :fail = 'reject';

insert into payment (tenant, id, reference, amount) values (:tenant, :command_id, :reference, :amount);
insert into broken (tenant, id) select null, :command_id where :fail = 'broken';

select ibid.emit('payment', :reference, 'Paid', jsonb_build_object('amount', :amount));
select ibid.emit('payment', :reference, 'Paid', jsonb_build_object('amount', :amount), 17) where :fail = 'version';

select 201 as status, jsonb_build_object('id', :command_id) as body, 'payment' as resource_type, :command_id as resource_id;
