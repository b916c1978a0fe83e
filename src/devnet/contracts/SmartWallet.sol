// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// A contract account that pays by ERC-1271. One key owns it; what follows the key's 65 bytes in a signature is
/// ignored, so that a test can make signatures longer than a key's, as real wallets' are.
contract SmartWallet {
    bytes4 private constant VALID = 0x1626ba7e;
    bytes4 private constant INVALID = 0xffffffff;

    address public owner;

    constructor(address owner_) {
        owner = owner_;
    }

    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4) {
        if (signature.length < 65) return INVALID;
        bytes32 r = bytes32(signature[:32]);
        bytes32 s = bytes32(signature[32:64]);
        address recovered = ecrecover(digest, uint8(signature[64]), r, s);
        return recovered != address(0) && recovered == owner ? VALID : INVALID;
    }
}
