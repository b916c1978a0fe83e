-- When a follow-up that was taken may be taken again; null before. Most end in their first try: it changes this column alone, which no
-- index has, so that the new version stays on its page and no index gets an entry for it.
alter table tollbook.follow_up add column retry_at timestamptz;
