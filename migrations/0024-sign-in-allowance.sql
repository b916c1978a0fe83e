-- How many refused sign-ins strangers may still leave in the ledger one by one.
insert into tollbook.event_allowance values ('refused_sign_in', 0, 'epoch');
