select ibid_emit('order', :id, 'OrderChanged', '{}');
insert into raised (tenant, account) values (:tenant, :id);
