import { prepaidContractAddress } from '../../src/devnet/prepaid-contract.ts';
import type { Address } from '../../src/base/values/primitives.ts';

export interface ChatConfigValues {
  readonly upstreamUrl: string;
  readonly token: Address;
  /** Where payouts go. */
  readonly recipient: Address;
  /** Left out, no mails are sent. */
  readonly mailDir?: string;
  /** How many times as long the model's server may take; default 1. */
  readonly patience?: number;
}

export const chatModel = 'chaos-model';

/** What a gateway that serves chat as well has at the top of its file. */
export const chatTop = `
features = ["x402", "chat"]
trust_proxy = ["127.0.0.1"]
`;

/** Its tables: credit is sold by job 9/0, and completions are paid by credit or by spends. */
export function chatTables(values: ChatConfigValues): string {
  const { upstreamUrl, token, recipient, mailDir, patience = 1 } = values;
  return `
[job_prices.9]
0 = "3000000000000"

[[job_policies]]
service_id = 9
job_index = 0
invocation_mode = "public_paid"

[[top_ups]]
service_id = 9
job_index = 0
currency_per_token = { USDC = "1" }

[identity]
secret = "env:CHAOS_IDENTITY_SECRET"
${mailDir === undefined ? '' : `mail_dir = "${mailDir}"`}

[chat]
key_per_minute = 1_000
account_per_minute = 1_000

[spend]
network = "eip155:84532"
contract = "${prepaidContractAddress}"
token = "${token}"
operator_key = "env:CHAOS_OPERATOR_KEY"
recipient = "${recipient}"
service_id = 1
min_charge = "1000"
max_spend = "50000000"
atoms_per_unit = "1000000"
atoms_per_native_unit = "1000"
max_fee_per_gas_wei = "1000000000000"

[[upstreams]]
name = "model"
base_url = "${upstreamUrl}/v1"
timeout_ms = ${1_500 * patience}

[[models]]
name = "${chatModel}"
upstreams = [{ name = "model", model = "devnet-large" }]
input_price = "2.50"
output_price = "10.00"
context_length = 131_072
max_output_tokens = 16_384
`;
}
