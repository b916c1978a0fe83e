// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IToken {
    function transferFrom(address from, address to, uint256 value) external returns (bool);
}

interface IContractAccount {
    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4);
}

/// The part of Permit2 that moves tokens by signature, at the address where real chains have it. It behaves as
/// that one does, and is not its bytecode. Its errors have the same names, because facilitators read them.
contract Permit2 {
    struct TokenPermissions {
        address token;
        uint256 amount;
    }

    struct PermitTransferFrom {
        TokenPermissions permitted;
        uint256 nonce;
        uint256 deadline;
    }

    struct SignatureTransferDetails {
        address to;
        uint256 requestedAmount;
    }

    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,uint256 chainId,address verifyingContract)");
    bytes32 private constant PERMISSIONS_TYPEHASH = keccak256("TokenPermissions(address token,uint256 amount)");
    string private constant PERMIT_TYPE =
        "PermitTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline)TokenPermissions(address token,uint256 amount)";
    string private constant WITNESS_PERMIT_STUB =
        "PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,";

    /// A bit for each nonce: its upper 248 bits name the word, its lower eight the bit.
    mapping(address owner => mapping(uint256 word => uint256)) public nonceBitmap;

    event UnorderedNonceInvalidation(address indexed owner, uint256 word, uint256 mask);

    error InvalidAmount(uint256 maxAmount);
    error InvalidContractSignature();
    error InvalidNonce();
    error InvalidSignature();
    error InvalidSignatureLength();
    error InvalidSigner();
    error SignatureExpired(uint256 signatureDeadline);

    function permitTransferFrom(
        PermitTransferFrom calldata permit,
        SignatureTransferDetails calldata details,
        address owner,
        bytes calldata signature
    ) external {
        bytes32 typeHash = keccak256(bytes(PERMIT_TYPE));
        bytes32 message = keccak256(
            abi.encode(typeHash, hashOf(permit.permitted), msg.sender, permit.nonce, permit.deadline)
        );
        move(permit, details, owner, message, signature);
    }

    function permitWitnessTransferFrom(
        PermitTransferFrom calldata permit,
        SignatureTransferDetails calldata details,
        address owner,
        bytes32 witness,
        string calldata witnessTypeString,
        bytes calldata signature
    ) external {
        bytes32 typeHash = keccak256(abi.encodePacked(WITNESS_PERMIT_STUB, witnessTypeString));
        bytes32 message = keccak256(
            abi.encode(typeHash, hashOf(permit.permitted), msg.sender, permit.nonce, permit.deadline, witness)
        );
        move(permit, details, owner, message, signature);
    }

    /// Uses up nonces of the caller: also such as are used already.
    function invalidateUnorderedNonces(uint256 word, uint256 mask) external {
        nonceBitmap[msg.sender][word] |= mask;
        emit UnorderedNonceInvalidation(msg.sender, word, mask);
    }

    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(abi.encode(DOMAIN_TYPEHASH, keccak256("Permit2"), block.chainid, address(this)));
    }

    function hashOf(TokenPermissions calldata permitted) private pure returns (bytes32) {
        return keccak256(abi.encode(PERMISSIONS_TYPEHASH, permitted.token, permitted.amount));
    }

    function move(
        PermitTransferFrom calldata permit,
        SignatureTransferDetails calldata details,
        address owner,
        bytes32 message,
        bytes calldata signature
    ) private {
        if (block.timestamp > permit.deadline) revert SignatureExpired(permit.deadline);
        if (details.requestedAmount > permit.permitted.amount) revert InvalidAmount(permit.permitted.amount);
        useNonce(owner, permit.nonce);
        requireSigned(owner, keccak256(abi.encodePacked(hex"1901", DOMAIN_SEPARATOR(), message)), signature);
        transferFrom(permit.permitted.token, owner, details.to, details.requestedAmount);
    }

    function useNonce(address owner, uint256 nonce) private {
        uint256 bit = 1 << uint8(nonce);
        uint256 word = nonce >> 8;
        if (nonceBitmap[owner][word] & bit != 0) revert InvalidNonce();
        nonceBitmap[owner][word] |= bit;
    }

    /// Also of tokens that return nothing.
    function transferFrom(address token, address owner, address to, uint256 amount) private {
        (bool done, bytes memory answer) = token.call(abi.encodeCall(IToken.transferFrom, (owner, to, amount)));
        bool isTrue = answer.length == 0 ? token.code.length > 0 : abi.decode(answer, (bool));
        require(done && isTrue, "TRANSFER_FROM_FAILED");
    }

    function requireSigned(address owner, bytes32 digest, bytes calldata signature) private view {
        if (owner.code.length > 0) {
            bytes4 said = IContractAccount(owner).isValidSignature(digest, signature);
            if (said != IContractAccount.isValidSignature.selector) revert InvalidContractSignature();
            return;
        }
        bytes32 r;
        bytes32 s;
        uint8 v;
        if (signature.length == 65) {
            (r, s) = abi.decode(signature[:64], (bytes32, bytes32));
            v = uint8(signature[64]);
        } else if (signature.length == 64) {
            bytes32 vs;
            (r, vs) = abi.decode(signature, (bytes32, bytes32));
            s = vs & bytes32(type(uint256).max >> 1);
            v = uint8(uint256(vs >> 255)) + 27;
        } else {
            revert InvalidSignatureLength();
        }
        address signer = ecrecover(digest, v, r, s);
        if (signer == address(0)) revert InvalidSignature();
        if (signer != owner) revert InvalidSigner();
    }
}
