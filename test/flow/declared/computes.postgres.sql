select ibid.reject('NOT_TODAY', 409, 'no') where :id = 'never';
select ibid.emit('order', :id, 'OrderChanged', '{}');
insert into raised (tenant, account) values (:tenant, :id);
