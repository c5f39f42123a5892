create table payment (tenant text not null, id text not null, amount text not null) strict;
