<?php

namespace Heavy\Entity;

use Doctrine\ORM\Mapping as ORM;

#[ORM\Entity]
#[ORM\Table(name: 'heavy_tax_rate')]
class TaxRate
{
    #[ORM\Id]
    #[ORM\Column(type: 'integer')]
    public int $id;

    #[ORM\ManyToOne(targetEntity: TaxCategory::class, inversedBy: 'rates')]
    public TaxCategory $category;

    #[ORM\Column(type: 'string')]
    public string $zone;

    #[ORM\Column(type: 'decimal', precision: 6, scale: 4)]
    public string $amount;

    #[ORM\Column(type: 'boolean')]
    public bool $included;
}
