// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {SmartWallet} from "./SmartWallet.sol";

/// Deploys contract accounts at addresses that are known before (CREATE2): the account of an owner can be paid, and can
/// sign as ERC-6492 says, before it has code.
contract WalletFactory {
    function addressOf(address owner) public view returns (address) {
        bytes32 code = keccak256(abi.encodePacked(type(SmartWallet).creationCode, abi.encode(owner)));
        return address(uint160(uint256(keccak256(abi.encodePacked(hex"ff", address(this), bytes32(0), code)))));
    }

    function deploy(address owner) external returns (address) {
        return address(new SmartWallet{salt: bytes32(0)}(owner));
    }
}
