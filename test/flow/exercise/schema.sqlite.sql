create table report (tenant text not null, id text not null, period text not null, primary key (tenant, id)) strict;
create unique index report_period on report (tenant, period);
create table risk (tenant text not null, case_id text not null, score integer not null, primary key (tenant, case_id)) strict;
select ibid_define_machine('case', '[["", "OPEN"], ["OPEN", "ASSIGNED"], ["ASSIGNED", "ASSIGNED"], ["OPEN", "ESCALATED"],
  ["ASSIGNED", "ESCALATED"], ["OPEN", "CLOSED"], ["ASSIGNED", "CLOSED"], ["ESCALATED", "CLOSED"]]');
