/** The TOML of a job that buys credit of the routing API: 9/0, for 10 USDC, or the same value in EURC or PUSD. */
export const topUpTables = `
# Credit for chat, bought over x402: the account is the one that signing in with the wallet leads to.
[[top_ups]]
service_id = 9
job_index = 0
currency_per_token = { USDC = "1", EURC = "1.08", PUSD = "1" }

[job_prices.9]
0 = "3063725490196078" # 10.000000 USDC

[[job_policies]]
service_id = 9
job_index = 0
invocation_mode = "public_paid"
name = "Credit for the models"
description = "10 USDC of credit, for the account of the wallet that pays."
`;
