<?php

namespace Heavy\Entity;

use Doctrine\Common\Collections\ArrayCollection;
use Doctrine\Common\Collections\Collection;
use Doctrine\ORM\Mapping as ORM;

#[ORM\Entity]
#[ORM\Table(name: 'heavy_tax_category')]
class TaxCategory
{
    #[ORM\Id]
    #[ORM\Column(type: 'integer')]
    public int $id;

    #[ORM\Column(type: 'string')]
    public string $code;

    /** @var Collection<int, TaxRate> */
    #[ORM\OneToMany(targetEntity: TaxRate::class, mappedBy: 'category', indexBy: 'zone')]
    public Collection $rates;

    public function __construct()
    {
        $this->rates = new ArrayCollection();
    }
}
