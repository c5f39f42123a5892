create table told (id text not null);
