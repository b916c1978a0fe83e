-- outside a transaction
-- so that a payment is found by any part of its transaction: the sixteen words of two bytes of each. It needs no extension
drop index concurrently if exists tollbook.payment_transaction_words;
create index concurrently payment_transaction_words on tollbook.payment using gin ((array[
  get_byte(transaction, 0) * 256 + get_byte(transaction, 1), get_byte(transaction, 2) * 256 + get_byte(transaction, 3),
  get_byte(transaction, 4) * 256 + get_byte(transaction, 5), get_byte(transaction, 6) * 256 + get_byte(transaction, 7),
  get_byte(transaction, 8) * 256 + get_byte(transaction, 9), get_byte(transaction, 10) * 256 + get_byte(transaction, 11),
  get_byte(transaction, 12) * 256 + get_byte(transaction, 13), get_byte(transaction, 14) * 256 + get_byte(transaction, 15),
  get_byte(transaction, 16) * 256 + get_byte(transaction, 17), get_byte(transaction, 18) * 256 + get_byte(transaction, 19),
  get_byte(transaction, 20) * 256 + get_byte(transaction, 21), get_byte(transaction, 22) * 256 + get_byte(transaction, 23),
  get_byte(transaction, 24) * 256 + get_byte(transaction, 25), get_byte(transaction, 26) * 256 + get_byte(transaction, 27),
  get_byte(transaction, 28) * 256 + get_byte(transaction, 29), get_byte(transaction, 30) * 256 + get_byte(transaction, 31)]))
  with (gin_pending_list_limit = 512) where length(transaction) = 32;
