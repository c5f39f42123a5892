select ibid_reject('NOT_TODAY', 409, 'no') where :id = 'never';
select ibid_emit('order', :id, 'OrderChanged', '{}');
insert into raised (tenant, account) values (:tenant, :id);
