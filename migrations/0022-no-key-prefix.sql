-- Keys are stored as their hashes alone: these were six secret characters. New keys have none.
update tollbook.api_key set prefix = '' where prefix <> '';
