/** How an operator may name a runner: the name is used in the config, in events and in streams. */
export const runnerName = /^[A-Za-z0-9._-]{1,64}$/;
