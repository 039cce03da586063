"""The plugins of the demo: orders, refunds, and a carrier that is connected while the agent runs."""

from __future__ import annotations

from pydantic import BaseModel

from foreword import DOMAIN_ORDER, TOOL_GUIDANCE_ORDER, Context, SystemPrompt, ToolRegistry, plugin

__all__ = ["RefundDesk", "carrier", "orders", "refunds"]


@plugin(name="orders")
def orders(prompt: SystemPrompt, tools: ToolRegistry) -> None:
    """Look orders up."""
    prompt.section("orders:policy", "An order that has not arrived after ten days counts as lost.", order=DOMAIN_ORDER)

    @tools.register
    def find_order(order: int) -> str:
        """Find an order by its number."""
        return f"order {order}: two books, 42.80 EUR, sent on Monday with Parcel Post"


class Config(BaseModel):
    """What the file says of refunds."""

    limit: int  # in EUR


class RefundDesk:
    """The people who pay refunds: there, or gone for the day."""

    def __init__(self) -> None:
        self.is_open = True

    def hours(self) -> str:
        """What the model is told of it."""
        return (
            f"The refund desk is {'open until 18:00' if self.is_open else 'closed; it opens again at 9:00 tomorrow'}."
        )


@plugin(name="refunds", config=Config)
def refunds(config: Config, prompt: SystemPrompt, tools: ToolRegistry, ctx: Context) -> None:
    """Pay refunds, up to a limit."""
    desk = RefundDesk()
    ctx.provide(desk)
    prompt.variable("refund_limit", f"{config.limit} EUR")
    prompt.section("refunds:policy", "Refunds of up to {{refund_limit}} need no consent.", order=DOMAIN_ORDER + 10)
    prompt.context("refunds:desk", desk.hours, order=10)

    @tools.register
    def refund(order: int, cents: int) -> str:
        """Refund a part of an order."""
        return f"refunded {cents / 100:.2f} EUR of order {order}"

    guidance = "Call refund once for each book, and tell the customer the sum."
    prompt.section("tool:refund", guidance, order=TOOL_GUIDANCE_ORDER, requires_tools=["refund"])


@plugin(name="carrier")
def carrier(tools: ToolRegistry) -> None:
    """Ask the carrier where a parcel is."""

    @tools.register
    def track_parcel(order: int) -> str:
        """Say where the parcel of an order is."""
        return f"order {order}: opened by customs in Bremen, one book damaged"
