"""Speed, utilisation and energy of a run, as Table 4 of BloombergGPT counts them.

A step of that run takes 32.5 s on 512 GPUs for 2,048 x 2,048 tokens, at 102 TFLOP/s a GPU: 8 operations for each
parameter and token, of which 6 are forward and backward, and 2 the second forward pass of activation checkpointing.

>>> speed = Throughput(num_parameters=50_558_868_480, checkpointed=True, num_devices=512)
>>> round(speed.tflops(2_048 * 2_048, 32.5), 1)
102.0
"""

from __future__ import annotations

from dataclasses import dataclass

from finpile_trainer.training.compute_budget import FLOPS_PER_PARAMETER, USEFUL_SHARE

#: Peak TFLOP/s of dense bfloat16 and power in watts, by a part of the device's name. NVIDIA's data sheets.
DEVICES = {"A100": (312.0, 400.0), "H100": (989.0, 700.0), "H200": (989.0, 700.0)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Throughput:
    """What a run needs to turn tokens and seconds into its speed."""

    num_parameters: int
    checkpointed: bool
    """Whether activation checkpointing runs the forward pass twice."""
    num_devices: int = 1
    peak_tflops: float | None = None
    """Of one device."""
    watts: float | None = None
    """Of one device."""

    @property
    def flops_per_token(self) -> float:
        """Operations for each token, without those of attention scores (Kaplan et al. 2020, §2.1)."""
        return self.num_parameters * FLOPS_PER_PARAMETER / (USEFUL_SHARE if self.checkpointed else 1.0)

    def tflops(self, tokens: float, seconds: float) -> float:
        """TFLOP/s of one device."""
        return self.flops_per_token * tokens / seconds / self.num_devices / 1e12

    def report(self, tokens: int, seconds: float) -> dict[str, float | None]:
        """Tokens a second, TFLOP/s and utilisation of a device, and the energy in watt hours; null if not known.

        Utilisation is useful operations, without the second forward pass, over the peak. Energy is that of devices
        under their rated power, without the rest of the machine.
        """
        if not tokens or seconds <= 0:
            return dict.fromkeys(("seconds", "tokens_per_second", "tflops", "utilisation", "watt_hours"))
        tflops = self.tflops(tokens, seconds)
        useful = tflops * (USEFUL_SHARE if self.checkpointed else 1.0)
        return {
            "seconds": seconds,
            "tokens_per_second": tokens / seconds,
            "tflops": tflops,
            "utilisation": useful / self.peak_tflops if self.peak_tflops else None,
            "watt_hours": self.num_devices * self.watts * seconds / 3600 if self.watts else None,
        }


def device_facts(name: str) -> tuple[float | None, float | None]:
    """Peak TFLOP/s and watts of a device, by its name; null if it is not known."""
    return next((facts for part, facts in DEVICES.items() if part in name), (None, None))
