create table attempt (key text not null) strict;

select ibid_define_machine('case', '[["", "OPEN"], ["OPEN", "ASSIGNED"], ["ASSIGNED", "ASSIGNED"],
  ["OPEN", "ESCALATED"], ["ASSIGNED", "ESCALATED"], ["OPEN", "CLOSED"], ["ASSIGNED", "CLOSED"], ["ESCALATED", "CLOSED"]]');
select ibid_define_machine('first', '[["", "S0"], ["", "S1"], ["", "S2"], ["", "S3"], ["", "S4"], ["", "S5"], ["", "S6"], ["", "S7"]]');
