-- A stream's key: the 32 bytes of a quote's digest, or the text of another stream. A text of 32 bytes ends with a NUL, which no
-- text contains, so that it is not a digest. Half the bytes of the text, in every event, claim and index entry.
create or replace function tollbook.stream_key(p_stream text) returns bytea language sql stable as $$
  select case
    when octet_length(p_stream) = 66 and starts_with(p_stream, '0x') and substr(p_stream, 3) !~ '[^0-9a-f]' then decode(substr(p_stream, 3), 'hex')
    when octet_length(p_stream) = 32 then convert_to(p_stream, 'UTF8') || '\x00'::bytea
    else convert_to(p_stream, 'UTF8') end
$$;

create or replace function tollbook.stream_name(p_key bytea) returns text language sql stable as $$
  select case octet_length(p_key) when 32 then '0x' || encode(p_key, 'hex') else encode(rtrim(p_key, '\x00'::bytea), 'escape') end
$$;

-- An event's leaf: the canonical JSON of its columns, its keys in order. What this returns for an event never changes: the tree
-- has its hash. Without separate settings, these become a part of the statements that call them. The time is never infinite;
-- where somebody made it so, the leaf still is one, so that the verifiers name it.
create or replace function tollbook.leaf_text(p_event tollbook.event) returns text language sql stable as $$
  select '{"at":"' || coalesce(to_char(p_event.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'infinite') || '","data":' || p_event.data
    || ',"lane":' || p_event.lane_id || ',"schema":1,"seq":' || p_event.seq || ',"stream":"' || tollbook.stream_name(p_event.stream)
    || '","type":"' || p_event.type || '","version":' || p_event.version || '}'
$$;

create or replace function tollbook.leaf(p_event tollbook.event) returns bytea language sql stable as $$
  select convert_to(tollbook.leaf_text(p_event), 'UTF8')
$$;

grant execute on function tollbook.stream_key, tollbook.stream_name, tollbook.leaf_text, tollbook.leaf to tollbook_writer, tollbook_reader;
