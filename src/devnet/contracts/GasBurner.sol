// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// An ERC-1271 account that burns all the gas it is given: what a hostile caller would deploy.
contract GasBurner {
    bytes4 private constant VALID = 0x1626ba7e;

    function isValidSignature(bytes32, bytes calldata) external view returns (bytes4) {
        while (gasleft() > 0) {}
        return VALID;
    }
}
