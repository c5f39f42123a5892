create table source (id text primary key, aggregate text not null, body text not null);
create table told (id text primary key);
