create table attempt (key text not null);
