import { BeforeInsert, Column, Entity, PrimaryColumn } from "typeorm";
import { Typed, type Sequencer } from "@firnid/client";

export const order = new Typed("order");

@Entity("orders")
export class Order {
  static ids: Sequencer<bigint>; // set when the program starts

  /** A bigint in the database, order_… in TypeScript and JSON. */
  @PrimaryColumn("bigint", {
    transformer: {
      to: (text: string) => text && String(order.parse(text)),
      from: (id: string) => id && order.format(BigInt(id)),
    },
  })
  id!: string;

  @Column("text")
  item!: string;

  @BeforeInsert()
  async takeId() {
    this.id ??= order.format(await Order.ids.next());
  }
}
