"""Adam with Nesterov momentum as in TensorFlow 1, which the released program uses."""

from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer


class Nadam(Optimizer):
    r"""The released program's optimiser: ``torch.optim.NAdam`` without the momentum schedule.

    $$
    \theta \leftarrow \theta - \alpha \frac{\sqrt{1 - \beta_2^t}}{1 - \beta_1^t} \,
    \frac{\beta_1 m + (1 - \beta_1) g}{\sqrt{v} + \epsilon}
    $$

    Args:
        params: Parameters, or groups of parameters.
        lr: Learning rate $\alpha$. (default: 0.001)
        betas: Decay rates of the moments. (default: (0.9, 0.999))
        eps: $\epsilon$ (default: 1e-8)
        weight_decay: L2 factor, added to the gradient. (default: 0)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 0.001,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad.add(p, alpha=group["weight_decay"])
                state = self.state[p]
                if not state:
                    state["step"] = torch.zeros(())
                    state["exp_avg"] = torch.zeros_like(p)
                    state["exp_avg_sq"] = torch.zeros_like(p)
                state["step"] += 1
                t = float(state["step"])
                m, v = state["exp_avg"], state["exp_avg_sq"]
                m.lerp_(grad, 1 - beta1)
                v.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
                lr = group["lr"] * (1 - beta2**t) ** 0.5 / (1 - beta1**t)
                p.addcdiv_(m.lerp(grad, 1 - beta1), v.sqrt().add_(group["eps"]), value=-lr)
