-- A quote is paid once, by the version of its stream: the claims that said so before are gone, also those that calls keep.
delete from tollbook.claim using tollbook.event
  where event.type = 'settlement_started' and claim.stream = event.stream and claim.key = substring(
    sha256(convert_to('["quote","","","0x' || encode(event.stream, 'hex') || '"]', 'UTF8')) from 1 for 16);
update tollbook.call set claims = (
    select json_agg(kept order by at) from json_array_elements(claims) with ordinality as each(kept, at) where kept->>'kind' <> 'quote')
  where claims::text like '%"quote"%';
