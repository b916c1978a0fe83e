// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IToken {
    function transfer(address to, uint256 value) external returns (bool);
    function transferFrom(address from, address to, uint256 value) external returns (bool);
}

/// Prepaid accounts that are spent by signature, for development: with the interface, the errors and the EIP-712 domain
/// of the contract that operators know. Anyone may land a spend; only its operator can claim it, until it expires; then
/// its account, and no other, gets it back.
contract ShieldedCredits {
    struct CreditAccountView {
        address spendingKey;
        address token;
        uint256 balance;
        uint256 totalFunded;
        uint256 totalSpent;
        uint256 nonce;
    }

    struct SpendAuth {
        bytes32 commitment;
        uint64 serviceId;
        uint8 jobIndex;
        uint256 amount;
        address operator;
        uint256 nonce;
        uint64 expiry;
        bytes signature;
    }

    struct Spend {
        bytes32 commitment;
        uint256 amount;
        address operator;
        uint64 expiry;
        bool claimed;
    }

    event CreditsFunded(bytes32 indexed commitment, address indexed token, uint256 amount, uint256 newBalance);
    event CreditsSpent(bytes32 indexed commitment, bytes32 indexed authHash, uint256 amount, uint256 remaining);
    event PaymentClaimed(bytes32 indexed authHash, address indexed operator, uint256 amount);
    event CreditsWithdrawn(bytes32 indexed commitment, address indexed recipient, uint256 amount);
    event CreditsReclaimed(bytes32 indexed authHash, bytes32 indexed commitment, uint256 amount);

    error AccountNotFound(bytes32 commitment);
    error InsufficientCredits(uint256 available, uint256 requested);
    error InvalidSignature();
    error InvalidNonce(uint256 expected, uint256 got);
    error SpendExpired(uint64 expiry, uint256 currentTime);
    error SpendingKeyMismatch(address expected, address got);
    error AlreadyClaimed(bytes32 authHash);
    error NotDesignatedOperator(address expected, address got);
    error AuthNotFound(bytes32 authHash);
    error TokenMismatch(address expected, address got);
    error OperatorRequired();
    error NotExpiredYet(uint64 expiry, uint256 currentTime);
    error CommitmentMismatch(bytes32 expected, bytes32 got);
    error TransferFailed();

    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 public constant SPEND_TYPEHASH = keccak256(
        "SpendAuthorization(bytes32 commitment,uint64 serviceId,uint8 jobIndex,uint256 amount,address operator,uint256 nonce,uint64 expiry)"
    );
    bytes32 public constant WITHDRAW_TYPEHASH =
        keccak256("WithdrawCredits(bytes32 commitment,address recipient,uint256 amount,uint256 nonce)");
    /// Half of secp256k1's order: of a signature's two forms only the lower one counts.
    uint256 private constant HIGHEST_S = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;

    mapping(bytes32 commitment => CreditAccountView) private accounts;
    mapping(bytes32 authHash => Spend) private spends;

    function fundCredits(address token, uint256 amount, bytes32 commitment, address spendingKey) external {
        CreditAccountView storage account = accounts[commitment];
        if (spendingKey == address(0)) revert SpendingKeyMismatch(account.spendingKey, spendingKey);
        if (account.spendingKey == address(0)) {
            account.spendingKey = spendingKey;
            account.token = token;
        }
        if (account.spendingKey != spendingKey) revert SpendingKeyMismatch(account.spendingKey, spendingKey);
        if (account.token != token) revert TokenMismatch(account.token, token);
        account.balance += amount;
        account.totalFunded += amount;
        emit CreditsFunded(commitment, token, amount, account.balance);
        if (!IToken(token).transferFrom(msg.sender, address(this), amount)) revert TransferFailed();
    }

    function authorizeSpend(SpendAuth calldata auth) external returns (bytes32 authHash) {
        if (auth.operator == address(0)) revert OperatorRequired();
        CreditAccountView storage account = accountOf(auth.commitment);
        if (block.timestamp > auth.expiry) revert SpendExpired(auth.expiry, block.timestamp);
        if (auth.nonce != account.nonce) revert InvalidNonce(account.nonce, auth.nonce);
        if (auth.amount > account.balance) revert InsufficientCredits(account.balance, auth.amount);
        requireSigned(account.spendingKey, spendHash(auth), auth.signature);

        account.nonce += 1;
        account.balance -= auth.amount;
        account.totalSpent += auth.amount;
        authHash = keccak256(abi.encode(auth.commitment, auth.serviceId, auth.jobIndex, auth.nonce));
        spends[authHash] = Spend(auth.commitment, auth.amount, auth.operator, auth.expiry, false);
        emit CreditsSpent(auth.commitment, authHash, auth.amount, account.balance);
    }

    function claimPayment(bytes32 authHash, address recipient) external {
        Spend storage spend = openSpend(authHash);
        if (msg.sender != spend.operator) revert NotDesignatedOperator(spend.operator, msg.sender);
        if (block.timestamp > spend.expiry) revert SpendExpired(spend.expiry, block.timestamp);
        spend.claimed = true;
        emit PaymentClaimed(authHash, msg.sender, spend.amount);
        if (!IToken(accounts[spend.commitment].token).transfer(recipient, spend.amount)) revert TransferFailed();
    }

    /// The amount returns to the account it came from: the sender cannot name another.
    function reclaimExpiredAuth(bytes32 authHash, bytes32 commitment) external {
        Spend storage spend = openSpend(authHash);
        if (commitment != spend.commitment) revert CommitmentMismatch(spend.commitment, commitment);
        if (block.timestamp <= spend.expiry) revert NotExpiredYet(spend.expiry, block.timestamp);
        spend.claimed = true;
        accounts[commitment].balance += spend.amount;
        accounts[commitment].totalSpent -= spend.amount;
        emit CreditsReclaimed(authHash, commitment, spend.amount);
    }

    function withdrawCredits(
        bytes32 commitment,
        address recipient,
        uint256 amount,
        uint256 nonce,
        bytes calldata signature
    ) external {
        CreditAccountView storage account = accountOf(commitment);
        if (nonce != account.nonce) revert InvalidNonce(account.nonce, nonce);
        if (amount > account.balance) revert InsufficientCredits(account.balance, amount);
        bytes32 message = keccak256(abi.encode(WITHDRAW_TYPEHASH, commitment, recipient, amount, nonce));
        requireSigned(account.spendingKey, message, signature);
        account.nonce += 1;
        account.balance -= amount;
        emit CreditsWithdrawn(commitment, recipient, amount);
        if (!IToken(account.token).transfer(recipient, amount)) revert TransferFailed();
    }

    function getAccount(bytes32 commitment) external view returns (CreditAccountView memory) {
        return accounts[commitment];
    }

    function getSpendAuth(bytes32 authHash)
        external
        view
        returns (uint256 amount, address token, address operator, uint64 expiry, bool claimed)
    {
        Spend storage spend = spends[authHash];
        return (spend.amount, accounts[spend.commitment].token, spend.operator, spend.expiry, spend.claimed);
    }

    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(
            abi.encode(
                DOMAIN_TYPEHASH, keccak256("ShieldedCredits"), keccak256("1"), block.chainid, address(this)
            )
        );
    }

    function spendHash(SpendAuth calldata auth) private pure returns (bytes32) {
        return keccak256(
            abi.encode(
                SPEND_TYPEHASH,
                auth.commitment,
                auth.serviceId,
                auth.jobIndex,
                auth.amount,
                auth.operator,
                auth.nonce,
                auth.expiry
            )
        );
    }

    function accountOf(bytes32 commitment) private view returns (CreditAccountView storage account) {
        account = accounts[commitment];
        if (account.spendingKey == address(0)) revert AccountNotFound(commitment);
    }

    function openSpend(bytes32 authHash) private view returns (Spend storage spend) {
        spend = spends[authHash];
        if (spend.operator == address(0)) revert AuthNotFound(authHash);
        if (spend.claimed) revert AlreadyClaimed(authHash);
    }

    function requireSigned(address key, bytes32 message, bytes calldata signature) private view {
        if (signature.length != 65) revert InvalidSignature();
        if (uint256(bytes32(signature[32:64])) > HIGHEST_S) revert InvalidSignature();
        bytes32 digest = keccak256(abi.encodePacked(hex"1901", DOMAIN_SEPARATOR(), message));
        address recovered =
            ecrecover(digest, uint8(signature[64]), bytes32(signature[:32]), bytes32(signature[32:64]));
        if (recovered == address(0) || recovered != key) revert InvalidSignature();
    }
}
