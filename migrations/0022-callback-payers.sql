-- Whose callback it is: customers share what a gateway sends at once. Null of callbacks of before.
alter table tollbook.callback add column payer text collate "C";
