// An agent of the Vercel AI SDK; OpenTelemetry's exporter sends its spans to where OTEL_EXPORTER_OTLP_ENDPOINT says.
import { createOpenAI } from "@ai-sdk/openai";
import { OpenTelemetry } from "@ai-sdk/otel";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { registerTelemetry, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] });
provider.register();
registerTelemetry(new OpenTelemetry());

const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL, apiKey: process.env.OPENAI_API_KEY });
const result = streamText({
  model: openai.chat(process.env.EXAMPLE_MODEL),
  prompt: process.env.EXAMPLE_QUESTION,
  telemetry: { functionId: "trip planner" },
  stopWhen: stepCountIs(4),
  tools: {
    weather: tool({
      description: "The forecast of a place.",
      inputSchema: z.object({ place: z.string() }),
      execute: async ({ place }) => `${place}: light rain from 15:00`,
    }),
    last_train: tool({
      description: "The last train of the day.",
      inputSchema: z.object({ start: z.string(), to: z.string() }),
      execute: async ({ start, to }) => `${start} to ${to}: 21:42, platform 3`,
    }),
  },
});
for await (const text of result.textStream) process.stdout.write(text);
console.log();
await provider.shutdown();
