-- outside a transaction
-- by job and time, so that what is given up by policy is found without reading the dead letters that are kept
drop index concurrently if exists tollbook.call_dead_by_job;
create index concurrently call_dead_by_job on tollbook.call (service_id, job_index, due_at) where status = 'dead';
