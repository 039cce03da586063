"""A plugin: what refunds add to the prompt. foreword.yaml uses it as refunds:refunds."""

from pydantic import BaseModel, SecretStr

from foreword import DOMAIN_ORDER, TOOL_GUIDANCE_ORDER, SystemPrompt, ToolSchema, plugin

REFUND = ToolSchema(
    name="refund",
    description="Refund an order.",
    parameters={
        "type": "object",
        "properties": {"order": {"type": "string"}, "cents": {"type": "integer", "minimum": 1}},
        "required": ["order", "cents"],
        "additionalProperties": False,
    },
)


class Config(BaseModel):
    """What foreword.yaml may say under config."""

    limit: int = 50  # in EUR
    key: SecretStr = SecretStr("")


@plugin(name="refunds", config=Config)
def refunds(config: Config, prompt: SystemPrompt) -> None:
    """Contribute; whatever is registered here belongs to refunds, and goes when the plugin goes."""
    prompt.variable("refund_limit", f"{config.limit} EUR")
    prompt.section("refunds:policy", "Refunds of up to {{refund_limit}} need no consent.", order=DOMAIN_ORDER)

    prompt.tools([REFUND])
    guidance = "Call refund once per order, and tell the customer the sum."
    prompt.section("tool:refund", guidance, order=TOOL_GUIDANCE_ORDER, requires_tools=["refund"])

    if not config.key.get_secret_value():  # what may change while an agent runs is a context, and no section
        prompt.context("refunds:service", "The refund service is not connected: refunds are noted down.", order=10)
