create table kase (
  tenant text not null, id text not null, source text not null, number text not null,
  reviewer text, closed_reason text, primary key (tenant, id));
create table escalation (
  tenant text not null, id text not null, case_id text not null, case_version bigint not null, primary key (tenant, id));
create table report (tenant text not null, id text not null, period text not null, primary key (tenant, id));
create table risk (tenant text not null, case_id text not null, score bigint not null, primary key (tenant, case_id));
create table evidence (tenant text not null, id text not null, digest text not null, primary key (tenant, id));
create table notification (tenant text not null, id text not null, case_id text not null, purpose text not null, primary key (tenant, id));
create unique index case_number on kase (tenant, source, number);
create unique index escalation_once on escalation (tenant, case_id, case_version);
create unique index report_period on report (tenant, period);
create unique index evidence_digest on evidence (tenant, digest);

-- The provider's side of notifications, which no transaction of ours covers.
create table provider (key text primary key, sent bigint not null);
