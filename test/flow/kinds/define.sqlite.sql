select ibid_define_machine('case', '[["", "ANYTHING"]]');
select 200 as status;
