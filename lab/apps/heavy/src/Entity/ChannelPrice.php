<?php

namespace Heavy\Entity;

use Doctrine\ORM\Mapping as ORM;

#[ORM\Entity]
#[ORM\Table(name: 'heavy_channel_price')]
class ChannelPrice
{
    #[ORM\Id]
    #[ORM\Column(type: 'integer')]
    public int $id;

    #[ORM\ManyToOne(targetEntity: Variant::class, inversedBy: 'prices')]
    public Variant $variant;

    #[ORM\Column(type: 'string')]
    public string $channel;

    #[ORM\Column(type: 'integer')]
    public int $price;

    #[ORM\Column(type: 'integer', name: 'original_price')]
    public int $originalPrice;
}
