<?php

namespace Heavy\Entity;

use Doctrine\Common\Collections\ArrayCollection;
use Doctrine\Common\Collections\Collection;
use Doctrine\ORM\Mapping as ORM;
use Symfony\Component\Serializer\Annotation\Groups;

#[ORM\Entity]
#[ORM\Table(name: 'heavy_product')]
class Product
{
    #[ORM\Id]
    #[ORM\Column(type: 'integer')]
    #[Groups(['shop'])]
    public int $id;

    #[ORM\Column(type: 'string')]
    #[Groups(['shop'])]
    public string $code;

    #[ORM\Column(type: 'boolean')]
    #[Groups(['admin'])]
    public bool $enabled;

    /** @var Collection<int, ProductTranslation> */
    #[ORM\OneToMany(targetEntity: ProductTranslation::class, mappedBy: 'product', indexBy: 'locale')]
    #[Groups(['shop'])]
    public Collection $translations;

    /** @var Collection<int, Variant> */
    #[ORM\OneToMany(targetEntity: Variant::class, mappedBy: 'product')]
    #[Groups(['shop'])]
    public Collection $variants;

    public function __construct()
    {
        $this->translations = new ArrayCollection();
        $this->variants = new ArrayCollection();
    }
}
