-- Views for people: functions/audit.sql defines them.
create schema audit;
