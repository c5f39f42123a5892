insert into report (tenant, id, period) values (:tenant, :command_id, :period);
select ibid_emit('report', :period, 'ReportGenerated', json_object('period', :period));
select 201 as status, 'report' as resource_type, :command_id as resource_id;
