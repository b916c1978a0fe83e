// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {IPermit2, Permit2Proxy} from "./Permit2Proxy.sol";

/// What payers of x402's scheme `exact` name as the spender of their Permit2 signatures, at the address where real
/// chains have it. It behaves as that one does, and is not its bytecode.
contract ExactPermit2Proxy is Permit2Proxy {
    struct Witness {
        address to;
        uint256 validAfter;
    }

    string public constant WITNESS_TYPE_STRING =
        "Witness witness)TokenPermissions(address token,uint256 amount)Witness(address to,uint256 validAfter)";
    bytes32 public constant WITNESS_TYPEHASH = keccak256("Witness(address to,uint256 validAfter)");

    function settle(
        IPermit2.PermitTransferFrom calldata permit,
        address owner,
        Witness calldata witness,
        bytes calldata signature
    ) external alone {
        pay(permit, owner, witness, signature);
        emit Settled();
    }

    function settleWithPermit(
        EIP2612Permit calldata permit2612,
        IPermit2.PermitTransferFrom calldata permit,
        address owner,
        Witness calldata witness,
        bytes calldata signature
    ) external alone {
        approve(permit.permitted, owner, permit2612);
        pay(permit, owner, witness, signature);
        emit SettledWithPermit();
    }

    error InvalidAmount();

    function pay(
        IPermit2.PermitTransferFrom calldata permit,
        address owner,
        Witness calldata witness,
        bytes calldata signature
    ) private {
        if (permit.permitted.amount == 0) revert InvalidAmount();
        bytes32 hash = keccak256(abi.encode(WITNESS_TYPEHASH, witness.to, witness.validAfter));
        IPermit2.SignatureTransferDetails memory details =
            IPermit2.SignatureTransferDetails(witness.to, permit.permitted.amount);
        move(permit, details, owner, witness.validAfter, hash, WITNESS_TYPE_STRING, signature);
    }
}
