create table flag (tenant text not null, name text not null, value text not null, primary key (tenant, name)) strict;
create table projection (
  tenant text not null, case_id text not null, version integer not null, status text not null, primary key (tenant, case_id)) strict;
create table tag (tenant text not null, case_id text not null, tag text not null, primary key (tenant, case_id, tag)) strict;
create table counter (tenant text not null, name text not null, value integer not null, primary key (tenant, name)) strict;
