-- Whether a command made the invitation, on the gateway's machine: it needs no role. Any other counts while its maker is an admin.
alter table identity.operator_invitation add column by_command boolean not null default false;
update identity.operator_invitation set by_command = true where invited_by not in (select name from identity.operator);
